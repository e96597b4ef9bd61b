"""`keras-bert fill-mask`, from a clone: python training/fill_mask.py --help"""

import sys

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(["fill-mask", *sys.argv[1:]])
