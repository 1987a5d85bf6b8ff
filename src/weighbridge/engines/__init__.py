"""Container engines that environments share."""
