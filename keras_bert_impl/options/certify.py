"""The options of `keras-bert certify`."""

import dataclasses


@dataclasses.dataclass
class CertifyConfig:
    """Computes fifty texts on every backend and in every export, and writes or checks the certificate of a checkpoint.

    Args:
        model: checkpoint directory. With a certificate in it, what this machine computes is compared with that.
        exports: whether exports are made and compared, too: as many as this machine has the tools for.
        overwrite: write a new certificate instead of comparing with the one that is there.
    """

    model: str
    exports: bool = True
    overwrite: bool = False
