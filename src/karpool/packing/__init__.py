"""Where would these pods go, if these nodes were gone?"""
