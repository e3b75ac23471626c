"""Code that every other package may use, without knowledge of the domain.

Clock, chance and threads come in through this package (`clock`, `chance`,
`blocking`), so that the whole program runs under virtual time with a seed.

Architecture invariant: nothing here imports another `lehr` package.
"""
