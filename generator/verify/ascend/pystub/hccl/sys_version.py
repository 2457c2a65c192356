"""The version that MindSpore reads."""

__sys_version__ = "0.0.0"
