"""Loads a configuration as a project: its runs, paths, targets, fingerprints and command lines."""

from plumbline.project.project import Project, load, use_this_interpreter

__all__ = ["Project", "load", "use_this_interpreter"]
