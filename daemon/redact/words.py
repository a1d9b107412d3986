"""Words that tell a label, a message or the name of a type from a password."""

from __future__ import annotations

import re

ORDINARY = frozenset(
    re.findall(
        r"\w+",
        """password passwords passwort passwd secret token login username user your enter please the and for with must
    should not required optional string text hidden none null true false default example disabled enabled basic bearer
    identifier label reset forgot forgotten invalid missing incorrect wrong field input confirm confirmed confirmation
    change changed changeme current new old repeat again show hide strong weak encrypted hashed plain bcrypt scrypt
    placeholder redacted unknown empty unset undefined value values number boolean object array varchar bytes nullable
    integer credential credentials private public email phone contact contraseña kennwort senha mot passe passphrase
    hint prompt inherit ignore always never manual auto automatic generated random external internal vault keyring
    keychain environment env file path stdin session cookie oauth openid saml ldap kerberos local remote type name
    this that from into when will have has was are can use used using set get see""",
    )
)
TYPE_NOUNS = frozenset(
    re.findall(
        r"\w+",
        """Validator Type Field Input Schema Policy Rule Encoder Hasher Service Provider Handler Manager Factory Config
    Options Request Response Dto Model Form Reset Error Exception Token Component Props State Context Builder""",
    )
)
"""With one of these the name of a type ends."""
JOINING = frozenset(re.findall(r"\w+", "the and for with this that from into when will have has was are can see"))
"""Words that any sentence has: a passphrase, too."""
LABELS = ORDINARY - JOINING
"""One of these tells that a text of several words is no passphrase."""
