"""What a comparison stands on: named checks over the evidence of both arms, one file each, whatever the source."""
