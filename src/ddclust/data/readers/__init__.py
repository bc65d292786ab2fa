"""Files and folders to data: one file per kind of format, collected in ``files.FORMATS``."""
