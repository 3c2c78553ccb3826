"""Which instance types there are, what they hold and what they cost.

Here are the built-in types, files with types, types that only nodes show, and prices with the user's changes. It may
import `model` and `wire` only. It does not place pods and asks no cloud.
"""
