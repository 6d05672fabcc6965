"""Makes and reads what a study measures apart from its runs (a step's time, say).

run_measurement.py        calls a study's function and stores the frame that it returns
measurement_file.py       the frame and the file beside it that says what it was made with
"""
