"""What a model is told beside the messages: prompt, session context, notices (harness-agents 3)."""
