"""`keras-bert fill-mask`, from a clone: python training/fill_mask.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["fill-mask"])
