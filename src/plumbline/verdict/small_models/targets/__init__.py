"""Makes the targets that studies share: each module has one table or figure, and is called as the study's own are."""
