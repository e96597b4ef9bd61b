"""Joins the hosts of a TPU slice that a stand-in for the metadata server describes, and computes on their CPUs.

    GCE_METADATA_IP=localhost:1234 JAX_FORCE_TPU_INIT=1 JAX_PLATFORMS=cpu python tests/distributed_slice.py single

Prints a line of JSON: the number of this process, how many there are, what each of them gave to the others, and whether
a SIGTERM of one reaches all; or the error.
"""

import json
import os
import signal
import sys
import time

os.environ["KERAS_BACKEND"] = "jax"

import jax

# JAX looks for chips, finds none, and sets this variable, so that the metadata server would not be asked.
os.environ.pop("TPU_SKIP_MDS_QUERY", None)

from keras_bert_impl import distribution
from keras_bert_impl.distribution.processes import process_number_and_count


def main():
    try:
        with distribution.distributed(distribution.Distribution(distribution=sys.argv[1])):
            number, count = process_number_and_count()
            found = {"number": number, "count": count, "gathered": distribution.gathered_from_processes(number + 5)}
            found["chief"], found["joined"] = distribution.from_chief(number + 7), jax.distributed.is_initialized()
            end, asked = distribution.EndSignal(), []
            end.listen()
            for step in range(6):
                if count > 1 and number == 1 and step == 2:
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(1)  # the service tells the others within a second
                asked.append(end.after_execution())
                distribution.gathered_from_processes(step)  # as the sums of a step do
            found["asked"] = asked
    except ValueError as error:
        found = {"error": str(error)}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
