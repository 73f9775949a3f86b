"""What a run of Beckon's agent costs, beside other agents with the same model and the same tool."""
