"""Names the one scale of the made-up study."""

SCALE = "tiny"
