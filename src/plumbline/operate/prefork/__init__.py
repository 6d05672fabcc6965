"""Starts jobs from a process that has imported the packages already, so that a short job does not wait for them.

client.py         stands for the job: asks the server for it, passes signals on, ends as the job does
server.py         has the packages imported, and forks a process for each job
"""
