"""Today's machines and prices, asked of the clouds themselves: one file a cloud.

Each asks with the cloud's own library, or over HTTP where a price list is public, and makes a price list of the
answers. Either all that was asked for is there, or an error says in one line what is not. Only `karpool catalog update`
imports this, and libraries of clouds are imported when they are used.
"""
