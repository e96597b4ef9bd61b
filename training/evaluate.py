"""`keras-bert evaluate`, from a clone: python training/evaluate.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["evaluate"])
