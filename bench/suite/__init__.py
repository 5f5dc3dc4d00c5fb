"""The benchmark suite behind `./dev bench`: all groups of the zoo in all engines, on the processes of `comparison`."""
