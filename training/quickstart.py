"""`keras-bert quickstart`, from a clone: python training/quickstart.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["quickstart"])
