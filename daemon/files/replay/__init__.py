"""The recorded events replayed in time order: `world` holds one track of revisions for each path.

`changes` says what a change makes of a file, `reads` and `observe` what is concluded from what records show of it,
`snapshots` what trees say, `launches` what programs did, `moves` what was moved unseen.
"""
