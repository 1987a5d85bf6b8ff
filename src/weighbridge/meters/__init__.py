"""Measures resource use during a trial, such as CPU time, memory and interrupts, with little disturbance."""
