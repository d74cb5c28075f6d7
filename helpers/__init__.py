"""What the chapters share: real data, pictures, explorers, exercise checks, and the parts of a GPT.

Import the part you need (``from helpers import data, plots``). Importing ``helpers`` alone loads
nothing else, so that a cell that only reads data does not wait for torch.
"""
