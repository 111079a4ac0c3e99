"""One module for each command of `calc`: plain arguments in, a Calculation out, by the functions of the cost model."""
