"""Suites for those who add to dobandit: subclass one, and pytest checks that yours keeps the contract.

policies  `PolicySuite`: a policy of your own, on small problems of every kind
storage   `StorageSuite`: a storage of your own
"""
