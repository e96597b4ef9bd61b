"""`keras-bert export`, from a clone: python training/export.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["export"])
