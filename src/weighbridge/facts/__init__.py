"""What a run says about the machine that it ran on."""
