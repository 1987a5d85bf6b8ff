"""Which option is the load of which workload is kept with the run: its report must not need the plug-ins."""
