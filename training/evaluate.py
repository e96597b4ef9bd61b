"""`keras-bert evaluate`, from a clone: python training/evaluate.py --help"""

import sys

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
