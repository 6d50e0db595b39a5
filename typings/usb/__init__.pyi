# What genericdp uses of pyusb, which carries no types of its own.
