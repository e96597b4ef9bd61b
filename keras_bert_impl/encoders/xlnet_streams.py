"""The two streams by which an XLNet learns words in a random order (Yang et al. 2019, sections 2.2 to 2.4)."""

from keras_bert_impl.layers import QueryStream


def second_stream(encoder, rows, mask_positions, permuted, seed=None):
    """The states of an XLNetEncoder's tokens, and behind them of the queries that predict words.

    Args:
        encoder: the XLNetEncoder, whose layers are called a second time.
        rows: its inputs by name.
        mask_positions: int (batch, predictions), as of `layers.QueryStream`.
        permuted: of `layers.QueryStream`.
        seed: of it, too.

    Returns: states (batch, length + predictions, hidden_size), and the places of the queries among them (batch,
        predictions).
    """
    stream = QueryStream(permuted=permuted, seed=seed, name="query_stream")
    found = stream(mask_positions, rows["padding_mask"], rows["segment_ids"], sequence_ids=rows.get("sequence_ids"))
    embeddings, start = encoder.token_embedding(rows["token_ids"]), encoder.get_layer("query_start")
    start.trainable = True
    hidden = encoder.get_layer("embeddings_dropout")(start(embeddings, found["places"]))
    distances = encoder.get_layer("distances")(embeddings)
    context = {
        "attention_mask": found["attention_mask"],
        "positions": encoder.get_layer("distances_dropout")(distances),
        "same_segment": found["same_segment"],
        "places": found["places"],
    }
    for number in encoder.config.schedule:
        hidden = encoder.get_layer(f"block_{number}")(hidden, **context)
    return encoder.get_layer("output_dropout")(hidden), found["query_places"]
