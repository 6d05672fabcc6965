"""Shows what was tried in a folder: its tries and screens over time, what luck alone gives, and the runs of each.

A module gathers (`tried_changes`, `folder_runs`, `printed_curves`), a module draws (`progress_picture`), a module makes
pages (`workbench_pages`). Nothing here needs what trains: a wheel without torch or pandas shows a trainer's folder.
"""
