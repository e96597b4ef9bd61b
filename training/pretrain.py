"""`keras-bert pretrain`, from a clone: python training/pretrain.py --help"""

import sys

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(["pretrain", *sys.argv[1:]])
