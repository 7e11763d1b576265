"""Origins of neural networks, 1943 to 1986, and image filters: plain Python and NumPy, one file per paper."""
