"""`python -m keras_bert_impl` is `keras-bert`."""

if __name__ == "__main__":
    from keras_bert_impl.cli import main

    main()
