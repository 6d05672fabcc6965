"""Closed counts of the studies' decoders against the printed totals."""

from dataclasses import replace

import pytest

from plumbline.audit.parameter_counts import head_width
from plumbline.core.errors import PlumblineError
from plumbline.published.printed_cells import PrintedSetup
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.studies.key_norms import audit as key_norms
from plumbline.studies.premature.audit import decoder_sizes as premature
from plumbline.studies.quack import audit as quack
from plumbline.studies.query_free.audit import decoder_sizes as query_free
from plumbline.studies.transfer.audit import decoder_sizes as transfer


@pytest.fixture(scope="module")
def settings(repository):
    return lambda study: PrintedSetup(PrintedNumbers.of(study, repository))


def test_transfer_to_the_digit(settings):
    base = transfer.base(settings("transfer"))
    assert base.total() == 1_216_710_656
    assert base.total() + transfer.extra("selective_attn", base) == 1_191_544_832
    assert transfer.extra("gated_attn_qknorm", base) == 1_575_936 and transfer.extra("diff_attn", base) == 101_376
    large = transfer.large(settings("transfer"))
    assert (large.ffn_width, large.head_width, large.total()) == (8448, 96, 3_042_487_296)
    assert transfer.large_as_printed(settings("transfer")) == replace(large, ffn_width=5632)
    with pytest.raises(PlumblineError, match="method 'softpik'; did you mean 'softpick'"):
        transfer.extra("softpik", base)


def test_transfer_flops_by_hand(settings):
    layer = 2 * 1024**2 * 2048 + 1024 * (4 * 2048**2 + 4 * 2048 * 512 + 6 * 2048 * 5632)
    assert transfer.sequence_flops(transfer.base(settings("transfer")), 1024) == 3 * 24 * layer


def test_premature_to_the_digit(settings):
    base = premature.base(settings("premature"))
    assert base.total() == 269_682_240 and premature.large(settings("premature")).total() == 700_491_264
    assert replace(base, norm_vectors=1).total() == 269_642_880
    assert replace(base, biases=False).total() == 269_509_440
    assert replace(base, ffn_matrices=3, ffn_width=2560).total() == 269_707_840
    assert premature.llama(settings("premature")).total() == 269_470_080


def test_query_free_to_the_digit(settings):
    small = query_free.decoder(settings("query_free"), narrow=True, multiple=4)
    assert (small.body(), small.total()) == (79_727_784, 117_915_816)
    baseline = query_free.decoder(settings("query_free"))
    assert (baseline.ffn_width, baseline.total()) == (3072, 124_373_760)
    wide = query_free.decoder(settings("query_free"), multiple=4.5, learned_query=False)
    assert wide.total() == baseline.total()


def test_quack_and_key_norms_to_the_digit(settings):
    assert quack.multi_head(settings("quack")).total() == 1_040_246_784
    assert quack.latent_total(settings("quack"), 128) == 998_041_600
    assert key_norms.decoder(settings("key_norms")).total() == 88_630_528


def test_settings_name_what_is_wrong(tmp_path):
    folder = tmp_path / "sixth" / "published"
    folder.mkdir(parents=True)
    (folder / "setup.yaml").write_text("- id: model\n  values: {layers: 2, width: 600.5, tied: yes}\n")
    settings = PrintedSetup(PrintedNumbers(folder))
    assert settings.whole("model", "layers") == 2 and settings.flag("model", "tied")
    with pytest.raises(PlumblineError, match=r"setup.yaml.*no entry 'modl'.*'model'"):
        settings.whole("modl", "layers")
    with pytest.raises(PlumblineError, match="no 'layer'; did you mean 'layers'"):
        settings.whole("model", "layer")
    with pytest.raises(PlumblineError, match=r"600.5; write a whole number"):
        settings.whole("model", "width")
    with pytest.raises(PlumblineError, match=r"model.tied is True; write"):
        settings.whole("model", "tied")
    with pytest.raises(PlumblineError, match="2; write true or false"):
        settings.flag("model", "layers")
    with pytest.raises(PlumblineError, match=r"7.*not share.*of 512"):
        head_width(512, 7)
