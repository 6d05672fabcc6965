"""Holds the components of the slot `placement`: where norms stand around a layer's sublayers."""
