"""`keras-bert plan-tpu`, from a clone: python tpu/plan.py --help"""

from keras_bert_training.cli import main

if __name__ == "__main__":
    main(before=["plan-tpu"])
