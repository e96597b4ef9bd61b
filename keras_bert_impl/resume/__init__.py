"""What exact resumption needs: data as a function of the step, and the saved states of a training."""
