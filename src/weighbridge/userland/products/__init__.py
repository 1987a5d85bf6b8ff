"""The forms of a root filesystem that environments need: a tar archive and an unpacked folder."""
