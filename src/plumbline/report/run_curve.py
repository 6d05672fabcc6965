"""Draws a run's curve as SVG, small however many steps it has: no spike is lost, and what is not finite is a gap."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

#: The picture in its own units, and its margins: left for numbers, below for steps.
WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 640, 200, 56, 30, 10, 12
#: Points of a line at most: of each stretch of steps its lowest and its highest.
POINTS = 360
#: Points that are still drawn as such.
DOTS = 45
#: Where the largest value is so many times the median, the axis is of powers of ten.
LOGARITHMIC = 12.0

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class TrainingCurveLine:
    """A line of a curve's picture: `points` are (step, value), steps rising; `dots`: draw the points too, joined.

    `name` is also the line's class in the style sheet.
    """

    name: str
    points: Sequence[Point]
    dots: bool = False


@dataclass(frozen=True)
class Band:
    """The lowest, the mean and the highest of several runs: `spans` are (step, lowest, mean, highest), steps rising."""

    spans: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True, kw_only=True)
class TrainingCurvePicture:
    """One picture of lines over training steps. `steps`: where the axis of steps ends; `ended`: the step at which the
    run diverged, if it did; `description`: what the picture shows, for who cannot see it; `band`: lies below the lines.
    """

    title: str
    lines: Sequence[TrainingCurveLine]
    steps: float
    description: str
    ended: float | None = None
    band: Band | None = None
    _finite: list[float] = field(init=False)

    def __post_init__(self) -> None:
        values = [value for line in self.lines for _, value in line.points if math.isfinite(value)]
        ends = [end for _, low, _, high in self.band.spans for end in (low, high)] if self.band else []
        object.__setattr__(self, "_finite", [*values, *ends])

    def svg(self) -> Markup:
        """Draw the picture as an SVG element; empty if no value is finite."""
        if not self._finite:
            return Markup("")
        axis = _choose_axis(self._finite)
        parts = [_draw_ticks(axis), _draw_steps(self.steps)]
        parts += [_draw_band(self.band, axis, self.steps)] if self.band else []
        parts += [_draw_line(line, axis, self.steps) for line in self.lines]
        if self.ended is not None:
            parts.append(_draw_end(self.ended, self.steps))
        return Markup(
            '<svg class="curve" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>{}</svg>'
        ).format(WIDTH, HEIGHT, self.description, self.title, Markup("").join(parts))


def thin_points(points: Sequence[Point], most: int = POINTS) -> list[Point]:
    """Thin a line to at most about `most` points without losing a spike or a gap.

    Of each of equally long stretches it keeps the lowest point, the highest and the first that is not finite, in their
    order; and the first and last of all.
    """
    if len(points) <= most:
        return list(points)
    stretches = most // 2
    edges = [number * len(points) // stretches for number in range(stretches + 1)]
    places = {0, len(points) - 1}
    for first, end in itertools.pairwise(edges):
        finite = [place for place in range(first, end) if math.isfinite(points[place][1])]
        if finite:
            places |= {min(finite, key=lambda place: points[place][1]), max(finite, key=lambda place: points[place][1])}
        if len(finite) < end - first:
            places.add(next(place for place in range(first, end) if not math.isfinite(points[place][1])))
    return [points[place] for place in sorted(places)]


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    powers: bool

    def y(self, value: float) -> float:
        """Where a value is, from above."""
        at = math.log10(value) if self.powers else value
        share = (min(max(at, self.low), self.high) - self.low) / (self.high - self.low)
        return ABOVE + (1 - share) * (HEIGHT - ABOVE - BELOW)

    @property
    def ticks(self) -> list[float]:
        if self.powers:
            first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            every = max(1, (last - first) // 4 + 1)
            return [10.0**power for power in range(first, last + 1, every)]
        step = _round_step((self.high - self.low) / 4)
        return [step * at for at in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


def _choose_axis(values: Sequence[float]) -> _Axis:
    ordered = sorted(values)
    low, high, middle = ordered[0], ordered[-1], ordered[len(ordered) // 2]
    if low > 0 and middle > 0 and high / middle > LOGARITHMIC:
        bottom, top = math.log10(low), math.log10(high)
        if math.floor(top) - math.ceil(bottom) < 1:  # less than two powers: the whole ones around
            bottom, top = math.floor(bottom), math.ceil(top)
        return _Axis(bottom, top, True)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return _Axis(low - room, high + room, False)


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return power * min((1, 2, 5, 10), key=lambda times: abs(times * power - step))


def _x(step: float, steps: float) -> float:
    return LEFT + step / max(steps, 1) * (WIDTH - LEFT - RIGHT)


def _draw_ticks(axis: _Axis) -> Markup:
    labels = [
        Markup('<path class="grid" d="M{} {:.1f}H{}"/><text class="y" x="{}" y="{:.1f}">{}</text>').format(
            LEFT, axis.y(tick), WIDTH - RIGHT, LEFT - 6, axis.y(tick) + 3.5, f"{tick:.4g}"
        )
        for tick in axis.ticks
    ]
    return Markup("").join(labels)


def _draw_steps(steps: float) -> Markup:
    step = _round_step(steps / 5) if steps > 0 else 1.0
    ticks = [step * at for at in range(math.floor(steps / step + 1e-9) + 1)]
    labels = [
        Markup('<text class="x" x="{:.1f}" y="{}">{}</text>').format(_x(tick, steps), HEIGHT - 12, f"{tick:,.0f}")
        for tick in ticks
    ]
    base = Markup('<path class="base" d="M{} {}H{}"/>').format(LEFT, HEIGHT - BELOW, WIDTH - RIGHT)
    return base + Markup("").join(labels)


def _draw_line(line: TrainingCurveLine, axis: _Axis, steps: float) -> Markup:
    path, pen = [], False
    for step, value in thin_points(line.points):
        if not math.isfinite(value) or (axis.powers and value <= 0):
            pen = False
            continue
        path.append(f"{'L' if pen else 'M'}{_x(step, steps):.1f} {axis.y(value):.1f}")
        pen = True
    line_markup = Markup('<path class="line {}" d="{}"/>').format(line.name, "".join(path))
    if (line.dots and len(line.points) <= DOTS) or len(path) == 1:
        circles = [
            Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="2.6"/>').format(
                line.name, _x(step, steps), axis.y(value)
            )
            for step, value in line.points
            if math.isfinite(value) and (not axis.powers or value > 0)
        ]
        line_markup += Markup("").join(circles)
    return line_markup


def _draw_band(band: Band, axis: _Axis, steps: float) -> Markup:
    upper = [f"{_x(step, steps):.1f} {axis.y(high):.1f}" for step, _, _, high in band.spans]
    lower = [f"{_x(step, steps):.1f} {axis.y(low):.1f}" for step, low, _, _ in reversed(band.spans)]
    mean = TrainingCurveLine(name="one", points=[(step, mean) for step, _, mean, _ in band.spans])
    return Markup('<path class="band" d="M{}Z"/>').format("L".join([*upper, *lower])) + _draw_line(mean, axis, steps)


def _draw_end(step: float, steps: float) -> Markup:
    x = _x(step, steps)
    side = ("end", x - 5) if x > WIDTH / 2 else ("start", x + 5)
    return Markup(
        '<path class="ended" d="M{:.1f} {}V{}"/><text class="ended" text-anchor="{}" x="{:.1f}" y="{}">diverged</text>'
    ).format(x, ABOVE, HEIGHT - BELOW, side[0], side[1], ABOVE + 10)
