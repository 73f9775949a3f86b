"""What Beckon ships: bills of materials of images and wheels, and the known vulnerabilities of the locks."""
