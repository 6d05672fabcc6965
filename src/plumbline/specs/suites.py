from plumbline.evaluate.suites import *  # replaced by the helper's
from plumbline.evaluate.suites import Suite, Task, suite
