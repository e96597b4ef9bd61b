"""`keras-bert convert`, from a clone: python training/convert.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["convert"])
