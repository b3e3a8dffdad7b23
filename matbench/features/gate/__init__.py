"""`matbench compare OLD.jsonl NEW.jsonl`, which compares record files; and the gate for CI."""
