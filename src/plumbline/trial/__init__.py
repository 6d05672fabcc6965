"""One method against another one under `config.trial`: a page of losses and of what so many seeds can find.

A first look. A verdict, which counts what else was tried, is `plumbline.verdict`, and reads the csv beside the page.
"""
