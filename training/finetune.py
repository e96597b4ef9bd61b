"""`keras-bert finetune`, from a clone: python training/finetune.py --help"""

import sys

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(["finetune", *sys.argv[1:]])
