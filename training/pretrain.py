"""`keras-bert pretrain`, from a clone: python training/pretrain.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["pretrain"])
