"""Tells whether a change is real, with power and a ledger of what was tried.

decision/      while runs come in: one run of the candidate after another, until it is kept or discarded
numbers/       numbers of any program: a table of seeds, a search's log, submissions, the items of two models
own_method/    the methods of a user's own file, from their finished runs
checks/        what must hold of a method before it is trained, and of its trained weights

`judge` compares two sets of seeds, `power` says what so many seeds find, `ledger` keeps what was tried.
"""
