import json, time
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers="localhost:9092", acks="all", value_serializer=lambda v: json.dumps(v).encode())
for n in range(1000): producer.send("eventos-usuario", {"id_usuario": n, "acao": "clique", "timestamp": int(time.time())})
producer.flush()
