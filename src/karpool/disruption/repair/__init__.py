"""Repair: nodes whose conditions say that they are broken are replaced or rebooted, as policies of the provider say.

May import what other methods of disruption import. What a condition means is in the policies, never here; how a
command is carried out is for `execution`.
"""
